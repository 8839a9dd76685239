"""Presets of treebanks that cannot be had without a licence, on small files written by hand in their formats.

Each sentence has what its treebank is documented to have: headers, markup, gaps, secondary edges, compounds, functions.
"""

from pathlib import Path

import pytest

from tsgkit.evaluation._parameters import parameters_named
from tsgkit.treebank import read_trees
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._dependencies import dependencies_of
from tsgkit.treebank._heads import HeadRules
from tsgkit.treebank._presets import load_preset

NEGRA = """%% word\t\ttag\tmorph\tedge\tparent\tsecedge
#FORMAT 3
#BOT WORDTAG
-1\tUNKNOWN\tN\tmarked as unknown
0\t--\tN\tnot tagged
#EOT WORDTAG
#BOT NODETAG
10\tVP\tverb phrase
#EOT NODETAG
#BOS 1 0 899973978 1
Den\t\t\tART\tMasc.Akk.Sg\tNK\t500
Apfel\t\t\tNN\tMasc.Akk.Sg.*\tNK\t500
,\t\t\t$,\t--\t--\t0
sagte\t\t\tVVFIN\t3.Sg.Prt.Ind\tHD\t503
die\t\t\tART\tDef.Fem.Nom.Sg\tNK\t501
Gärtnerin\t\tNN\tFem.Nom.Sg.*\tNK\t501\tSB\t502
*LRB*\t\t\t$*LRB*\t--\t--\t0
mürrisch\t\tADJD\tPos\tMO\t502
*RRB*\t\t\t$*LRB*\t--\t--\t0
,\t\t\t$,\t--\t--\t0
gepflückt\t\tVVPP\t--\tHD\t502
.\t\t\t$.\t--\t--\t0
#500\t\t\tNP\t--\tOA\t502
#501\t\t\tNP\t--\tSB\t503
#502\t\t\tVP\t--\tOC\t503
#503\t\t\tS\t--\t--\t0
#EOS 1
"""
TIGER = """<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>
<corpus id="TIGER" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<head>
<meta><name>TIGER</name><format>NeGra format, version 4</format></meta>
<annotation>
<feature name="word" domain="T"/>
<feature name="pos" domain="T"><value name="ADJA">attributives Adjektiv</value></feature>
<edgelabel><value name="--">unbound</value><value name="SB">subject</value></edgelabel>
<secedgelabel><value name="SB"/></secedgelabel>
</annotation>
</head>
<body>
<s id="s1">
<graph root="s1_VROOT" discontinuous="true">
<terminals>
<t id="s1_1" word="Äpfel" lemma="Apfel" pos="NN" morph="Acc.Pl.Masc" case="Acc" number="Pl" gender="Masc"/>
<t id="s1_2" word="will" lemma="wollen" pos="VMFIN" morph="3.Sg.Pres.Ind" case="--" number="Sg" gender="--"/>
<t id="s1_3" word="er" lemma="er" pos="PPER" morph="3.Nom.Sg.Masc"><secedge label="SB" idref="s1_500"/></t>
<t id="s1_4" word="pflücken" lemma="pflücken" pos="VVINF" morph="Inf"/>
<t id="s1_5" word="&quot;" lemma="--" pos="$(" morph="--"/>
<t id="s1_6" word="." lemma="--" pos="$." morph="--"/>
</terminals>
<nonterminals>
<nt id="s1_500" cat="VP"><edge label="OA" idref="s1_1"/><edge label="HD" idref="s1_4"/></nt>
<nt id="s1_501" cat="S">
<edge label="HD" idref="s1_2"/><edge label="SB" idref="s1_3"/><edge label="OC" idref="s1_500"/>
</nt>
<nt id="s1_VROOT" cat="VROOT">
<edge label="--" idref="s1_501"/><edge label="--" idref="s1_5"/><edge label="--" idref="s1_6"/>
</nt>
</nonterminals>
</graph>
</s>
<s id="s2">
<graph root="s2_1">
<terminals><t id="s2_1" word="Süden" lemma="Süden" pos="NN" morph="Nom.Sg.Masc"/></terminals>
<nonterminals/>
</graph>
</s>
</body>
</corpus>
"""
FTB = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE text SYSTEM "corpus.dtd">
<text>
<SENT argument="ECO" author="X" date="1990-01-01" nb="7" textID="1">
<NP fct="SUJ"><w cat="D" ee="D-def-ms" ei="Dms" lemma="le" mph="ms" subcat="def">Le</w>
<w cat="N" ee="N-C-ms" ei="NCms" lemma="jardinier" mph="ms" subcat="C">jardinier</w>
<AP><w cat="A" ee="A-qual-ms" ei="Ams" lemma="âgé" mph="ms" subcat="qual">âgé</w></AP></NP>
<VN><w cat="CL" ee="CL-refl-3ms" ei="CL3ms" lemma="se" mph="3ms" subcat="refl">s'</w>
<w cat="V" ee="V--P3s" ei="VP3s" lemma="être" mph="P3s" subcat="">est</w>
<w cat="V" ee="V--Kms" ei="VKms" lemma="occuper" mph="Kms" subcat="">occupé</w></VN>
<PP fct="DE-OBJ"><w cat="P" ee="P" ei="P" lemma="de">du</w><NP>
<w cat="D" ee="D-def-ms" ei="Dms" lemma="le" mph="ms" subcat="def"></w>
<w compound="yes" cat="N" ee="N-C-ms" ei="NCms" lemma="pot de fleurs" mph="ms" subcat="C">
<w catint="N">pot</w> <w catint="P">de</w> <w catint="N">fleurs</w></w></NP></PP>
<w cat="PONCT" ee="PONCT-S" ei="PONCTS" lemma="." subcat="S">.</w>
</SENT>
</text>
"""
CTB = """<DOC>
<DOCID> CHTB_0001 </DOCID>
<HEADER>
<DATE> 1994-01-01 </DATE>
</HEADER>
<BODY>
<HEADLINE>
<S ID=1>
( (FRAG (NR 花园)
        (NN 消息)) )
</S>
</HEADLINE>
<P>
<S ID=2>
( (IP-HLN (NP-PN-SBJ (NR-PN 王) (NN-SHORT 园丁))
      (VP (ADVP (AD 昨天))
          (VP (VV 摘)
              (AS 了)
              (NP-OBJ (QP (CD 三)
                          (CLP (M 个)))
                      (NP (CP (WHNP-1 (-NONE- *OP*))
                              (CP (IP (NP-SBJ (-NONE- *T*-1))
                                      (VP (VA 红)))
                                  (DEC 的)))
                          (NN 苹果)))))
      (PU 。)) )
</S>
</P>
</BODY>
</DOC>
"""


SWITCHBOARD = """*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*x*
*x*            Copyright of nobody, 1995                          *x*

( (CODE (SYM SpeakerA1) (. .) ))
( (S
    (INTJ (UH Well) ) (, ,)
    (EDITED (RM (-DFL- \\[) ) (NP-SBJ-UNF (DT the) ) (, ,) (IP (-DFL- \\+) ))
    (NP-SBJ (DT the) (NN gardener) ) (RS (-DFL- \\]) )
    (VP (VBD left) ) (. .) (-DFL- E_S) ))
"""
ONTONOTES = "(TOP (CODE <TURN>))\n(TOP (S (NP-SBJ (PRP We)) (VP (VBP grow) (NP (NN tea))) (. /.)))\n"
HISTORICAL = """( (CODE <P_12>))

( (METADATA (AUTHOR ANNE_GARDENER:FEMALE:_:1600:30))
  (IP-MAT (NP-SBJ (PRO I))
          (MD wolde)
          (VB send)
          (NP-OB2 (PRO you))
          (NP-OB1 (D the)
                  (N rose-tree)
                  (CP-REL (WNP-1 0)
                          (C that)
                          (IP-SUB (NP-OB1 *T*-1) (NP-SBJ (PRO ye)) (VBD asked))))
          (PUNC .))
  (ID GARDENER,12.3))
"""
STARLANG = (
    "( (S (NP (ADJP {morphologicalAnalysis=yaşlı+ADJ}{turkish=Yaşlı}{english=Old}) (NP {turkish=bahçıvan}))"
    "  (VP (NP {turkish=gülleri}{english=roses}) (VP {turkish=suladı}))  (. {turkish=.})))"
)


def prepared(tmp_path, name, text, file, written, **options):
    """The clean trees of a file by its preset, and the head of every word by name."""
    path = tmp_path / file
    path.write_bytes(text.encode(written))
    preset = load_preset(name)
    trees = [preset.cleaning.apply(tree) for tree in read_trees(path, treebank=name, **options)]
    rules = HeadRules.parse(preset.head_rules)
    heads = []
    for tree in trees:
        words = dependencies_of(tree, rules)
        heads.append({each.word: words[each.head - 1].word if each.head else "" for each in words})
    deleted = parameters_named(preset.parameters).delete_labels
    return [format_tree(tree) for tree in trees], heads, deleted


def test_negra(tmp_path):
    (tree,), (heads,), deleted = prepared(tmp_path, "negra", NEGRA, "negra.export", "iso-8859-1")
    # The object and the participle are apart: the verb phrase keeps its head, brackets and commas go where they stand.
    assert tree == (
        "(TOP (S (NP (ART Den) (NN Apfel)) ($, ,) (VVFIN sagte) (NP (ART die) (NN Gärtnerin)) ($*LRB* *LRB*)"
        " (VP (ADJD mürrisch) ($*LRB* *RRB*) ($, ,) (VVPP gepflückt))) ($. .))"
    )
    assert (heads["Apfel"], heads["Gärtnerin"], heads["sagte"]) == ("sagte", "sagte", "")
    assert heads["mürrisch"] == "gepflückt"
    assert {"$.", "$,", "$*LRB*"} <= set(deleted)


def test_tiger(tmp_path):
    (tree, word), (heads, _), deleted = prepared(tmp_path, "tiger", TIGER, "tiger.xml", "iso-8859-1")
    assert tree == '(TOP (S (NN Äpfel) (VMFIN will) (PPER er) (VP (VVINF pflücken))) ($( ") ($. .))'.replace(
        "($(", "($-LRB-"
    )
    assert word == "(TOP (NN Süden))"
    assert heads["Äpfel"] == heads["er"] == heads["pflücken"] == "will"
    assert {"$.", "$,", "$("} <= set(deleted)


def test_tiger_in_export_format(tmp_path):
    rows = ["#FORMAT 4", "#BOS 1 0 1098266456 1 %% @SB2AV@", "Süß\tsüß\tADJD\tPos\tMO\t500"]
    rows += ["ist\tsein\tVAFIN\t3.Sg\tHD\t500", ".\t--\t$.\t--\t--\t0", "#500\t--\tS\t--\t--\t0", "#EOS 1", ""]
    (tree,), _, _ = prepared(tmp_path, "tiger", "\n".join(rows), "tiger.export", "iso-8859-1")
    assert (tree,) == tuple(prepared(tmp_path, "tiger", "\n".join(rows), "tiger.export", "utf-8")[0])
    assert tree == "(TOP (S (ADJD Süß) (VAFIN ist)) ($. .))"


def test_ftb(tmp_path):
    (tree,), (heads,), deleted = prepared(tmp_path, "ftb", FTB, "flmf7.xml", "iso-8859-1")
    assert tree == (
        "(TOP (SENT (NP (D Le) (N jardinier) (AP (A âgé))) (VN (CL s') (V est) (V occupé))"
        " (PP (P du) (NP (MWN (N pot) (P de) (N fleurs)))) (PONCT .)))"
    )
    assert heads["jardinier"] == heads["s'"] == heads["est"] == heads["du"] == "occupé"
    assert (heads["Le"], heads["âgé"]) == ("jardinier", "jardinier")
    assert "PONCT" in deleted
    (joined,), _, _ = prepared(tmp_path, "ftb", FTB, "flmf7.xml", "iso-8859-1", format="ftb:compounds=joined")
    assert "(NP (N pot_de_fleurs))" in joined


@pytest.mark.parametrize(("file", "encoding"), [("chtb_001.fid", "gb18030"), ("chtb_0001.nw", "utf-8")])
def test_ctb(tmp_path, file, encoding):
    (headline, tree), (_, heads), deleted = prepared(tmp_path, "ctb", CTB, file, encoding)
    assert headline == "(TOP (FRAG (NR 花园) (NN 消息)))"
    assert tree == (
        "(TOP (IP (NP (NR 王) (NN 园丁)) (VP (ADVP (AD 昨天)) (VP (VV 摘) (AS 了) (NP (QP (CD 三) (CLP (M 个)))"
        " (NP (CP (IP (VP (VA 红))) (DEC 的)) (NN 苹果))))) (PU 。)))"
    )
    assert heads["园丁"] == heads["昨天"] == heads["苹果"] == "摘"
    assert (heads["王"], heads["红"], heads["摘"]) == ("园丁", "苹果", "")
    assert "PU" in deleted


def test_penn_speech(tmp_path):
    preset = load_preset("penn")
    (tmp_path / "sw.mrg").write_text(SWITCHBOARD)
    trees = [preset.cleaning.apply(tree) for tree in read_trees(tmp_path / "sw.mrg", treebank="penn")]
    assert trees[0] is None
    assert format_tree(trees[1]) == (
        "(TOP (S (INTJ (UH Well)) (, ,) (EDITED (NP (DT the)) (, ,)) (NP (DT the) (NN gardener)) (VP (VBD left))"
        " (. .)))"
    )
    (tmp_path / "cnn.parse").write_text(ONTONOTES)
    trees = [preset.cleaning.apply(tree) for tree in read_trees(tmp_path / "cnn.parse", treebank="penn")]
    assert trees[0] is None
    assert format_tree(trees[1]) == "(TOP (S (NP (PRP We)) (VP (VBP grow) (NP (NN tea))) (. /.)))"


def test_historical(tmp_path):
    (tree,), (heads,), deleted = prepared(tmp_path, "historical", HISTORICAL, "letters.psd", "utf-8")
    assert tree == (
        "(TOP (IP (NP (PRO I)) (MD wolde) (VB send) (NP (PRO you))"
        " (NP (D the) (N rose-tree) (CP (C that) (IP (NP (PRO ye)) (VBD asked)))) (PUNC .)))"
    )
    assert (heads["rose-tree"], heads["the"], heads["ye"], heads["wolde"]) == ("wolde", "rose-tree", "asked", "")
    assert "PUNC" in deleted


def test_starlang(tmp_path):
    (tree,), (heads,), deleted = prepared(tmp_path, "starlang", STARLANG, "0001.train", "utf-8")
    assert tree == "(TOP (S (NP (ADJP Yaşlı) (NP bahçıvan)) (VP (NP gülleri) (VP suladı)) (. .)))"
    assert (heads["Yaşlı"], heads["gülleri"], heads["bahçıvan"]) == ("bahçıvan", "suladı", "suladı")
    assert "." in deleted


# As the how-to page says: options of the command, the beginning of a file, its first clean tree.
OTHERS = {
    "SPMRL": (
        ["--cut-labels=##"],
        "( (S (NP-SUJ##a=b## (NC##g=m|n=s## chat)) (VN (V##x=y## dort)) (PONCT##s=s## .)))\n",
        "(TOP (S (NP (NC chat)) (VN (V dort)) (PONCT .)))",
    ),
    "Sequoia": (
        ["--treebank=ftb", "--format=brackets"],
        "( (SENT (NP-SUJ (DET La) (NC pose)) (VN (V plaît)) (PONCT .)))\n",
        "(TOP (SENT (NP (DET La) (NC pose)) (VN (V plaît)) (PONCT .)))",
    ),
    "Arboretum": (
        ["--format=tigerxml", "--continuous"],
        '<corpus><body>\n<s id="s2" ref="A" forest="1/1" text="x">\n<graph root="s2_500"><terminals>'
        '<t id="s2_1" word="Han" lemma="han" pos="pron" morph="NOM" extra="--"/><t id="s2_2" word="ser" pos="v-fin"/>'
        '<t id="s2_3" word="." lemma="--" pos="pu" morph="--" extra="--"/></terminals><nonterminals>'
        '<nt id="s2_500" cat="s"><edge label="STA" idref="s2_501"/></nt><nt id="s2_501" cat="fcl">'
        '<edge label="S" idref="s2_1"/><edge label="P" idref="s2_2"/><edge label="PU" idref="s2_3"/></nt>'
        "</nonterminals></graph></s></body></corpus>",
        "(TOP (s (fcl (pron Han) (v-fin ser) (pu .))))",
    ),
    "Spoken Dutch Corpus": (
        ["--format=export", "--continuous"],
        "%% word\t\t\ttag\tmorph\t\tedge\tparent\tsecedge comment\n#BOS 1 6 984736249 0\n"
        "we\t\t\tVNW1\tT501f\t\tSU\t500\nuh\t\t\tTSW\tT001\t\t--\t0\nzijn\t\t\tWW2\tT302\t\tHD\t500\n"
        "#500\t\t\tSMAIN\t--\t\t--\t0\n#EOS 1\n",
        "(TOP (SMAIN (VNW1 we) (TSW uh) (WW2 zijn)))",
    ),
    "Turin University Treebank": (
        ["--format=brackets:comments=*"],
        "************** FRASE A-1 **************\n\n ( (S \n    (NP-SUBJ (ART~DE il) (NOU~CS gatto))\n"
        "    (VP (VMA~RE dorme))) ) \n",
        "(TOP (S (NP (ART~DE il) (NOU~CS gatto)) (VP (VMA~RE dorme))))",
    ),
    "Sejong": (
        ["--format=brackets:comments=;,several=join"],
        "; 나는 간다.\n(S \t(NP_SBJ 나/NP + 는/JX)\n\t(VP 가/VV + ㄴ다/EF + ./SF))\n",
        "(TOP (S (NP_SBJ 나/NP_+_는/JX) (VP 가/VV_+_ㄴ다/EF_+_./SF)))",
    ),
    "VietTreebank": (
        ["--format=brackets:several=join"],
        "<s id=7>\n(S (NP-SUB (N-H khả năng)) (VP (V-H là)))\n</s>\n",
        "(TOP (S (NP (N-H khả_năng)) (VP (V-H là))))",
    ),
    "PLAEME": (
        ["--treebank=icepahc"],
        "( (IP-MAT (CODE {PAGE~f368v}) (ADVP-TMP (ADV yore-ge:ara)) (BED was-be) (CODE <P_1>))\n   (ID ABERDEENT.1))\n",
        "(TOP (IP (ADVP (ADV yore)) (BED was)))",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_treebanks(tsgkit, tmp_path, name):
    options, text, tree = OTHERS[name]
    (tmp_path / "trees").write_text(text, encoding="utf-8")
    assert tsgkit("prepare", "--quiet", *options, "trees").stdout == f"{tree}\n"
    page = (Path(__file__).parents[2] / "docs" / "howto-treebanks.rst").read_text(encoding="utf-8")
    assert name in page
    assert f"``{' '.join(options)}``" in page


NOT_READ = {
    "#ID=sent_1 cp-[sp-[part-negli, sn-[nt-anni]]]\n": "is outside of all brackets",
    '<corpus xmlns="http://ufal.mff.cuni.cz/pdt/pml/"><s id="a"><root/></s></corpus>': "no <graph>",
    '<cintil xmlns="http://nlx.di.fc.ul.pt"><corpus/></cintil>': "XML of a kind that is not known",
    "<exml-doc>\n<text><s><node cat='S'/></s></text></exml-doc>\n": "XML of a kind that is not known",
    "#begin document (a); part 000\n": "columns of CoNLL-2012",
}


@pytest.mark.parametrize("text", NOT_READ)
def test_treebanks_that_are_not_read(tsgkit, tmp_path, text):
    (tmp_path / "trees").write_text(text)
    assert NOT_READ[text] in tsgkit("prepare", "trees", code=2).stderr


HEADS = {
    # Sun and Jurafsky (2004).
    "ctb": {
        ("VP", "ADVP VC NP"): 1,
        ("NP", "NR NN NN"): 2,
        ("NP", "QP NP"): 1,
        ("DP", "DT CLP"): 0,
        ("UCP", "NP CC VP"): 0,
        ("CP", "IP DEC"): 0,
        ("DNP", "NP DEG"): 1,
        ("QP", "CD CLP"): 1,
        ("VRD", "VV VA"): 0,
        ("VSB", "VV VV"): 1,
        ("LCP", "NP LC"): 1,
    },
    # Dybro-Johansen (2004).
    "ftb": {
        ("NP", "D A N PP"): 2,
        ("NP", "N N"): 0,
        ("NP", "D AP"): 1,
        ("AP", "ADV A"): 1,
        ("SENT", "NP VN NP PONCT"): 1,
        ("VPpart", "V NP"): 0,
        ("COORD", "C NP"): 0,
        ("PP", "P NP"): 0,
        ("PP", "ADV MWP NP"): 1,
        ("VN", "CL V V"): 2,
        ("Sint", "VN NP"): 0,
    },
    # What the tables for NEGRA agree on.
    "negra": {
        ("S", "NP VVFIN NP"): 1,
        ("S", "KOUS NP NP VMFIN"): 3,
        ("NP", "ART ADJA NN PP"): 2,
        ("NP", "ART NN NE"): 1,
        ("PP", "APPR ART NN"): 0,
        ("VP", "NP VVPP"): 1,
        ("CNP", "NP KON NP"): 0,
        ("AP", "ADV ADJA"): 1,
    },
}
HEADS["tiger"] = HEADS["negra"]


@pytest.mark.parametrize("name", HEADS)
def test_heads(name):
    rules = HeadRules.parse(load_preset(name).head_rules)
    for (label, children), head in HEADS[name].items():
        assert rules.head(label, children.split()) == head, (label, children)
